"""The widget as an earlier version had it: it does the same, and each of its files has other bytes."""

from types import MappingProxyType

from service.web.widget.bundle import Script, Widget, script_of, widget


def earlier_widget(number: int = 1) -> Widget:
    found, names = widget(), {}

    def earlier(script: Script) -> Script:
        text = script.body.decode()
        for name, before in names.items():
            text = text.replace(name, before)
        made = script_of(f"{text}\n// {number} versions ago\n".encode())
        names[script.name] = made.name
        return made

    others = [one for one in found.by_name.values() if one not in (found.panel, found.loader)]
    files = [earlier(one) for one in (*others, found.panel, found.loader)]
    return Widget(files[-1], files[-2], MappingProxyType({one.name: one for one in files}))
