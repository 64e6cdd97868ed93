"""Why a reshard is there, and which annotation would remove it."""
