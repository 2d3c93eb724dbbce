import { createInstalls } from '../app/catalogue/installs.ts'
import type { Installs } from '../app/catalogue/installs.ts'
import type { Prototypes } from '../app/pools/prototypes.ts'
import type { CatalogueFiles } from './catalogue-files.ts'
import { catalogue } from './template-files.ts'

export function openInstalls(files: CatalogueFiles, prototypes: Prototypes): Installs {
  return createInstalls({
    catalogue,
    find: files.find,
    async prepare(templateId, onProgress, signal) {
      const recipe = catalogue.find((one) => one.templateId === templateId)
      if (!recipe) throw new Error(`${templateId} is not in the catalogue`)
      return files.prepare(recipe, onProgress, signal)
    },
    ensurePrototype: prototypes.ensure,
  })
}
