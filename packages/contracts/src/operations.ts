import { createAccessToken, deleteAccessToken, listTeams } from './teams/account.ts'
import {
  addMember,
  blockTeam,
  countRunningSandboxes,
  createTeam,
  createTeamKey,
  deleteTeamKey,
  killTeamSandboxes,
  listAllTeams,
  removeMember,
  unblockTeam,
  updateTeam,
} from './teams/admin.ts'
import { rotateEncryptionKey } from './encryption.ts'
import { getBuildLogs, getBuildStatus } from './builds/progress.ts'
import { buildDockerfile, rebuildDockerfile } from './builds/dockerfile.ts'
import { createKey, deleteKey, listKeys, renameKey } from './teams/api-keys.ts'
import { getSandboxLogs, getSandboxLogsV2, listLastLines } from './logs.ts'
import {
  getSandboxMetrics,
  getTeamMetrics,
  getTeamMetricsMax,
  listSandboxMetrics,
} from './metrics.ts'
import {
  createJoinToken,
  forgetNode,
  listFleetMembers,
  removeFleetMember,
} from './fleet-members.ts'
import { getNode, getNodeMoves, listNodes, setNodeStatus } from './nodes.ts'
import type { Operation } from './operation.ts'
import { createSandbox, createSandboxV2 } from './sandboxes/create.ts'
import {
  connectSandbox,
  connectSandboxV2,
  pauseSandbox,
  resumeSandbox,
} from './sandboxes/lifecycle.ts'
import {
  getSandbox,
  killSandbox,
  listSandboxes,
  listSandboxesV2,
  refreshSandbox,
  setSandboxTimeout,
} from './sandboxes/manage.ts'
import { getSandboxTimeline } from './sandboxes/timeline.ts'
import { getSandboxLineage } from './sandboxes/lineage.ts'
import { listFileChanges, readFileChange } from './sandboxes/changes.ts'
import { listDeniedSandboxes, listSandboxConnections } from './network/connections.ts'
import { updateSandboxNetwork } from './network/update.ts'
import { getDocs, getHealth, getOpenApi } from './service.ts'
import { createSecret, deleteSecret, getSecret, listSecrets, updateSecret } from './secrets.ts'
import { createSnapshot, forkSandbox, listSnapshots } from './snapshots.ts'
import { installTemplate, installTemplateAsOperator, listCatalogue } from './templates/catalogue.ts'
import { assignTags, findAlias, listTags, removeTags } from './templates/tags.ts'
import { findBuildFiles, requestBuild, requestBuildV2, startBuild } from './builds/request.ts'
import {
  deleteTemplate,
  getTemplate,
  listTemplates,
  listTemplatesV2,
  updateTemplate,
  updateTemplateV1,
} from './templates/manage.ts'

/** All published operations. Server tests iterate over this list, so none is left unchecked. */
export const operations: readonly Operation[] = [
  getHealth,
  getOpenApi,
  getDocs,
  createSandbox,
  createSandboxV2,
  listSandboxes,
  listSandboxesV2,
  getSandbox,
  killSandbox,
  setSandboxTimeout,
  refreshSandbox,
  updateSandboxNetwork,
  connectSandbox,
  connectSandboxV2,
  pauseSandbox,
  resumeSandbox,
  forkSandbox,
  createSnapshot,
  listSnapshots,
  getSandboxMetrics,
  listSandboxMetrics,
  getSandboxLogs,
  getSandboxLogsV2,
  listLastLines,
  listFileChanges,
  readFileChange,
  listSandboxConnections,
  listDeniedSandboxes,
  getSandboxLineage,
  getSandboxTimeline,
  getTeamMetrics,
  getTeamMetricsMax,
  listTemplates,
  listTemplatesV2,
  getTemplate,
  updateTemplate,
  updateTemplateV1,
  deleteTemplate,
  listCatalogue,
  installTemplate,
  requestBuild,
  requestBuildV2,
  findBuildFiles,
  startBuild,
  getBuildStatus,
  getBuildLogs,
  buildDockerfile,
  rebuildDockerfile,
  assignTags,
  removeTags,
  listTags,
  findAlias,
  listKeys,
  createKey,
  renameKey,
  deleteKey,
  listSecrets,
  createSecret,
  getSecret,
  updateSecret,
  deleteSecret,
  listTeams,
  createAccessToken,
  deleteAccessToken,
  createTeam,
  listAllTeams,
  updateTeam,
  blockTeam,
  unblockTeam,
  addMember,
  removeMember,
  createTeamKey,
  deleteTeamKey,
  killTeamSandboxes,
  countRunningSandboxes,
  installTemplateAsOperator,
  listNodes,
  getNode,
  setNodeStatus,
  getNodeMoves,
  rotateEncryptionKey,
  createJoinToken,
  listFleetMembers,
  removeFleetMember,
  forgetNode,
]
