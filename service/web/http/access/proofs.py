"""Proof of work before a reader token, while a site is asked far more than usual."""

from aiohttp import web

from service.domain.access.proof_of_work import ProofRequired, Solution, proof_secret
from service.domain.access.reader_tokens import Reader
from service.web.http.access.access import READER_SECRET
from service.workers.admission.proofs import Proofs

PROOFS: web.AppKey[Proofs] = web.AppKey("PROOFS")


async def require_proof(
    request: web.Request, project_id: str, reader: Reader, origin: str, solution: Solution | None
) -> None:
    """Raise ProofRequired with a challenge where the site is asked far more than usual, and no solution came along that
    is right and was not used before.
    """
    proofs = request.app[PROOFS]
    if not await proofs.are_needed(project_id):
        return
    secret = proof_secret(request.app[READER_SECRET], reader, origin)
    if solution is None or not await proofs.use(secret, solution):
        raise ProofRequired(proofs.challenge(secret))
