"""How are other trackers told, without anybody waiting for them?"""
