/** Simulates the one operation of a Kubernetes API server that apis use: the review of service account tokens. */
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text as readText } from 'node:stream/consumers'
import { z } from 'zod'
import { createLocalCa, issueServerCertificate } from '../tls/local-ca.ts'

export interface SimulatedPod {
  /** `namespace:name` of the service account. */
  readonly account: string
  readonly uid?: string
  readonly audience?: string
}

export interface SimulatedCluster {
  readonly port: number
  readonly accountDir: string
  /** Returns the token of a pod. */
  addPod(pod: SimulatedPod): string
  /** Answers all reviews with this status from now on. */
  failWith(status: number): void
  close(): Promise<void>
}

const Request = z.object({
  kind: z.literal('TokenReview'),
  spec: z.object({ token: z.string(), audiences: z.array(z.string()) }),
})
const ownToken = 'token-of-the-api'

/** Serves as `localhost`. */
export async function simulateCluster(): Promise<SimulatedCluster> {
  const pods = new Map<string, SimulatedPod>()
  const now = new Date()
  const ca = createLocalCa('localhost', now)
  const accountDir = await mkdtemp(join(tmpdir(), 'atoll-cluster-'))
  await writeFile(join(accountDir, 'ca.crt'), ca.certificate)
  await writeFile(join(accountDir, 'token'), `${ownToken}\n`)
  let failure: number | undefined
  const server = createServer(issueServerCertificate(ca, now), async (request, reply) => {
    const isOwn = request.headers.authorization === `Bearer ${ownToken}`
    const { spec } = Request.parse(JSON.parse(await readText(request)))
    const status = isOwn ? (failure ?? 201) : 403
    reply.writeHead(status, { 'Content-Type': 'application/json' })
    reply.end(JSON.stringify({ kind: 'TokenReview', status: review(pods.get(spec.token), spec) }))
  })
  server.listen(0, 'localhost')
  await once(server, 'listening')
  const address = server.address()
  return {
    port: typeof address === 'object' && address ? address.port : 0,
    accountDir,
    addPod(pod) {
      const token = `header.${Buffer.from(`pod ${pods.size}`).toString('base64url')}.signature`
      pods.set(token, pod)
      return token
    },
    failWith(status) {
      failure = status
    },
    async close() {
      server.close()
      server.closeAllConnections()
      await rm(accountDir, { recursive: true, force: true })
    },
  }
}

/** An answer has the audiences that are both in the token and in the request. */
function review(pod: SimulatedPod | undefined, spec: z.infer<typeof Request>['spec']) {
  const audience = pod?.audience ?? 'atoll-fleet'
  if (!pod || !spec.audiences.includes(audience)) return { error: 'invalid token' }
  const extra = pod.uid === undefined ? {} : { 'authentication.kubernetes.io/pod-uid': [pod.uid] }
  return {
    authenticated: true,
    audiences: [audience],
    user: { username: `system:serviceaccount:${pod.account}`, extra },
  }
}
