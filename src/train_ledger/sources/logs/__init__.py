"""What do logs say of ranks that hang, fail or were killed?"""
