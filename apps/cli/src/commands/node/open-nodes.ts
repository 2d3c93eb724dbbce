import type { PlatformClient } from '@atoll/client/platform'
import { Fault } from '@atoll/kit/fault'
import { findUrls } from '../../access.ts'
import type { CliContext } from '../../context.ts'

export function openNodes(context: CliContext): Promise<PlatformClient> {
  return openAsOperator(context, 'Only operators manage nodes')
}

/** Connects as an operator. Needs no API key. `refusal` is the reason for a missing token. */
export async function openAsOperator(
  context: CliContext,
  refusal: string,
): Promise<PlatformClient> {
  const { adminToken } = context.config
  if (adminToken === undefined) {
    throw new Fault(
      'unauthenticated',
      'no_admin_token',
      `${refusal}: set ATOLL_ADMIN_TOKEN to the token that the server has`,
    )
  }
  const { createPlatformClient } = await import('@atoll/client/platform')
  const { apiUrl } = await findUrls(context.config)
  return createPlatformClient({ url: apiUrl, adminToken })
}
