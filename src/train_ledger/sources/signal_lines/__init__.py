"""What do our own signal lines say, by the million?"""
