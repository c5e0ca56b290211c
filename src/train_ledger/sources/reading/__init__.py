"""What does a file say, whichever formats stand in it?"""
