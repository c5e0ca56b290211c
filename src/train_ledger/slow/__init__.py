"""Who drags, or what changed?"""
