import { NetworkUpdate } from './config.ts'
import { defineOperation } from '../operation.ts'
import { SandboxParams } from '../sandboxes/manage.ts'

export const updateSandboxNetwork = defineOperation({
  id: 'sandbox.updateNetwork',
  summary: 'Replace the egress rules of a running sandbox; omitted properties are cleared',
  method: 'PUT',
  path: '/sandboxes/{sandboxID}/network',
  auth: 'team',
  params: SandboxParams,
  body: NetworkUpdate,
  replies: { 204: { description: 'The rules are in force, for open connections too' } },
  errors: [400, 401, 404, 409, 500],
})
