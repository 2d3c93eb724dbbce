import type { NodeConfig } from '../config.ts'
import type { Images } from '../domain/builds/image.ts'
import { createSkopeo } from '../images/skopeo.ts'
import { checkInodes } from '../linux/disks/disk-images.ts'
import type { Host } from './host.ts'
import { openScratchDisk } from './scratch-disk.ts'

export function openImages(config: NodeConfig, host: Host): Images {
  return createSkopeo({
    runner: host.namespace,
    registries: config.ATOLL_REGISTRIES,
    openScratch: () => openScratchDisk(host),
    async checkRoom(bytes, count) {
      using _room = host.disks.reserveSpace(bytes, 'keeping this layer')
      await checkInodes(host.installation.dataDir, count, 'keeping this layer')
    },
  })
}
