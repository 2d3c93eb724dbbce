import { Fault } from '@atoll/kit/fault'
import type { Logger } from '@atoll/kit/log'
import type { FleetConfig } from '../config.ts'
import type { Authority } from '../identity/authority.ts'
import { admitNoPod, createPodAdmission } from '../kubernetes/admit-pod.ts'
import type { AdmitPod, PodAdmissionParts } from '../kubernetes/admit-pod.ts'

/** Lets the configured service accounts join. Refuses settings that need a cluster where there is none. */
export function openPodAdmission(
  config: FleetConfig,
  parts: {
    readonly authority: Authority
    readonly log: Logger
    readonly accountDir: string
    readonly allowOnce: PodAdmissionParts['allowOnce']
  },
): AdmitPod {
  const { ATOLL_FLEET_KUBERNETES_ACCOUNTS: accounts } = config
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = 443 } = config
  if (!accounts) return admitNoPod
  if (host === undefined) {
    const message =
      'ATOLL_FLEET_KUBERNETES_ACCOUNTS is for apis in a Kubernetes cluster, and KUBERNETES_SERVICE_HOST is not set'
    throw new Fault('invalid', 'configuration_refused', message)
  }
  const { authority, log, accountDir, allowOnce } = parts
  const cluster = { host, port, accountDir }
  return createPodAdmission({ accounts, cluster, authorityKey: authority.key, allowOnce, log })
}
