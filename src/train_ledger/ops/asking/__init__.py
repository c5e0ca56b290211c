"""What do the ranks of a living job give when they are asked, without being hurt?"""
