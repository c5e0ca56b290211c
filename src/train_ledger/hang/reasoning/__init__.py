"""Who waits for whom, over all groups, and who is at the root of it?"""
