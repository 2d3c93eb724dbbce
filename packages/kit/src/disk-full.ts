/** The reason of a fault that only more disk space cures. */
export const diskFull = 'disk_full'
