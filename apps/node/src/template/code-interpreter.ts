import { join } from 'node:path'
import type { CatalogueRecipe } from './catalogue.ts'
import { baseRecipe } from './recipe.ts'

/** Modules in the memory of new sandboxes: importing them takes seconds under gVisor. */
const loadedModules = [
  'numpy',
  'pandas',
  'matplotlib.pyplot',
  'matplotlib.backends.backend_agg',
  'matplotlib_inline.backend_inline',
  'PIL.Image',
]

const checkedModules = [
  ...['aiohttp', 'bs4', 'docx', 'IPython', 'joblib', 'jinja2', 'lxml', 'matplotlib', 'networkx'],
  ...['nltk', 'numpy', 'openpyxl', 'pandas', 'PIL', 'pytest', 'requests', 'scipy', 'seaborn'],
  ...['sklearn', 'sympy', 'tabulate', 'tornado', 'xarray', 'xlrd'],
]

/** Template of the published code interpreter packages: a server on port 49999 with a warm Python kernel. */
export const codeInterpreter: CatalogueRecipe = {
  templateId: 'codeinterpreterv1',
  name: 'code-interpreter',
  alias: 'code-interpreter-v1',
  description: 'Runs Python, JavaScript, TypeScript, R and bash for @e2b/code-interpreter',
  leastMemoryMb: 1024,
  sizeBytes: 2_200_000_000,
  debian: {
    ...baseRecipe,
    name: 'code-interpreter',
    revision: 1,
    packages: [
      ...baseRecipe.packages,
      'fonts-dejavu-core',
      'python3-aiohttp',
      'python3-bs4',
      'python3-docx',
      'python3-ipython',
      'python3-jinja2',
      'python3-joblib',
      'python3-lxml',
      'python3-matplotlib',
      'python3-matplotlib-inline',
      'python3-networkx',
      'python3-nltk',
      'python3-numpy',
      'python3-openpyxl',
      'python3-pandas',
      'python3-pil',
      'python3-pytest',
      'python3-requests',
      'python3-scipy',
      'python3-seaborn',
      'python3-sklearn',
      'python3-sympy',
      'python3-tabulate',
      'python3-tornado',
      'python3-tz',
      'python3-xarray',
      'python3-xlrd',
      'r-base-core',
      'r-cran-jsonlite',
    ],
    excludedPaths: [
      ...baseRecipe.excludedPaths,
      // 230 MB that only compilers for scipy's extensions and font editors read.
      'path-exclude=/usr/include/boost/*',
      'path-exclude=/usr/lib/*/openblas-pthread/*.a',
      'path-exclude=/usr/share/unicode/*',
    ],
    check: [
      baseRecipe.check,
      `python -c 'import ${checkedModules.join(', ')}'`,
      // The device that draws without an X server.
      `Rscript -e 'stopifnot(requireNamespace("jsonlite"), capabilities("cairo"))'`,
    ].join(' && '),
    expectedSteps: 1180,
  },
  program: {
    from: join(import.meta.dirname, '../../../interpreter/src'),
    folders: ['server', 'kernels'],
    to: 'opt/atoll/interpreter',
  },
  setup: {
    user: 'user',
    envVars: {},
    // The folder must exist when Python starts: only then does it find packages that `pip install` adds later.
    startCommand: `mkdir -p "$(python3 -m site --user-site)" && exec python3 /opt/atoll/interpreter/server/main.py --load ${loadedModules.join(',')}`,
    readyCommand: 'curl --silent --fail http://127.0.0.1:49999/health',
  },
}
