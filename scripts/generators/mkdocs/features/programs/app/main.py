from dock import Crane

crane = Crane()
crane.lift(9)
