import type { CatalogueTemplate } from '../domain/catalogue/catalogue.ts'
import type { DebianRecipe } from './recipe.ts'
import type { Program } from './program-files.ts'

/** Template of the catalogue and how it is built: a layer of Debian packages, and a small one with our programs. */
export interface CatalogueRecipe extends CatalogueTemplate {
  readonly debian: DebianRecipe
  readonly program: Program
  /** Disk space that the build needs. */
  readonly sizeBytes: number
}
