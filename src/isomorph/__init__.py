"""isomorph"""
