"""What do nanoGPT and its descendants print?"""
