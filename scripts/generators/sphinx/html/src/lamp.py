import fire

# begin
SIZE = 3
# end


class Lamp:
    def light(self) -> None:
        fire.on(self)

    def douse(self) -> None:
        fire.off(self)
