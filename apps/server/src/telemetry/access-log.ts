import type { EdgeRequest } from '@atoll/edge'
import type { EdgeConfig } from '@atoll/edge/config'
import type { Logger } from '@atoll/kit/log'

type OnEdgeRequest = (request: EdgeRequest) => void

/** Returns the receiver of requests to sandboxes: the metrics, the access log, both or undefined. */
export function observeEdge(
  { ATOLL_EDGE_ACCESS_LOG }: EdgeConfig,
  log: Logger,
  count: OnEdgeRequest | undefined,
): OnEdgeRequest | undefined {
  if (ATOLL_EDGE_ACCESS_LOG !== 'on') return count
  const accessLog = log.child({ part: 'edge' })
  return (request) => {
    count?.(request)
    const durationMs = Math.round(request.durationMs)
    accessLog.info({ event: 'edge.access', ...request, durationMs }, 'request to a sandbox')
  }
}
