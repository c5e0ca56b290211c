"""Which cause is it: what came first, a hang, hardware, a loop of restarts, a loss, or an end?"""
