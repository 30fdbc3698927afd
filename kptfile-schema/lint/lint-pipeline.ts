import type { KptFunction, Kptfile } from '../model/kptfile-schema.ts';
import type { LintReport, Step } from './lint-finding.ts';

/** The rules of kpt's own validation of pipeline and inventory, apart from those that need the package's files. */
export function lintPipeline(kptfile: Kptfile, report: Pick<LintReport, 'error'>): void {
  for (const list of ['mutators', 'validators'] as const) {
    kptfile.pipeline?.[list]?.forEach((entry, index) => {
      lintFunction(entry, ['pipeline', list, index], report);
    });
  }
  const { inventory } = kptfile;
  if (inventory === undefined) return;
  for (const field of ['namespace', 'name', 'inventoryID'] as const) {
    if ((inventory[field] ?? '').trim() === '') {
      report.error(
        'Inventory',
        ['inventory', field],
        `inventory needs namespace, name and inventoryID; ${field} is missing.`,
      );
    }
  }
}

function lintFunction(entry: KptFunction, steps: readonly Step[], report: Pick<LintReport, 'error'>): void {
  const image = entry.image ?? '';
  const exec = entry.exec ?? '';
  if (image === '' && exec === '') report.error('FunctionSource', steps, 'A function needs an image or an exec.');
  if (image !== '' && exec !== '') report.error('FunctionSource', steps, 'A function has image or exec, not both.');
  if (image !== '' && !isImageReference(image)) {
    report.error('Image', [...steps, 'image'], `${JSON.stringify(image)} is no image reference (name[:tag][@digest]).`);
  }
  const { configPath } = entry;
  if (configPath === undefined) return;
  if (configPath !== '' && Object.keys(entry.configMap ?? {}).length > 0) {
    report.error('FunctionConfig', steps, 'A function has configMap or configPath, not both.');
  }
  const problem = configPathProblem(configPath);
  if (problem !== undefined) report.error('ConfigPath', [...steps, 'configPath'], `configPath ${problem}.`);
}

function configPathProblem(path: string): string | undefined {
  if (path.trim() === '') return 'is empty';
  if (path.startsWith('/')) return 'must be relative to the package';
  return path.includes('..') ? 'must stay inside the package' : undefined;
}

const COMPONENT = '[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*';
const HOST = '(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*(?::\\d+)?/';
const REFERENCE = new RegExp(
  `^(?:${HOST})?${COMPONENT}(?:/${COMPONENT})*(?::\\w[\\w.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`,
);

/** The reference grammar of the OCI distribution project. */
function isImageReference(image: string): boolean {
  return image.length <= 512 && REFERENCE.test(image);
}
