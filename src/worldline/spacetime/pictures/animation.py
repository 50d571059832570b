"""x"""


def animation_html() -> str:
    return ""
