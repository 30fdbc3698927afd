import { isKptfilePath, type PackageFile, type PackageFiles } from '../../merge/package-files.ts';
import { isRecord, readKrmFile } from '../../model/krm/krm.ts';

/** The ConfigMap by which functions learn about their package: its name in what is cloned into deployment repositories, `example` elsewhere. */
export function packageContext(name: string): string {
  return [
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata:',
    '  name: kptfile.kpt.dev',
    '  annotations:',
    '    config.kubernetes.io/local-config: "true"',
    'data:',
    `  name: ${name}`,
    '',
  ].join('\n');
}

/** The name of a package: the last segment of its path. */
export function ownNameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/**
 * The files with the contexts that packages in a deployment repository have: one beside every Kptfile, with the name of that package.
 * `ownName` is the name of the outermost one; packages within it are named after their folders.
 */
export function withContexts(files: PackageFiles, ownName: string): PackageFiles {
  const result = new Map(files);
  for (const path of files.keys()) {
    if (!isKptfilePath(path)) continue;
    const folder = path.slice(0, -'Kptfile'.length);
    const name = folder === '' ? ownName : ownNameOf(folder.slice(0, -1));
    const context = { data: Buffer.from(packageContext(name)) };
    const known = files.get(`${folder}package-context.yaml`);
    if (known === undefined || nameIn(known) !== name) result.set(`${folder}package-context.yaml`, context);
  }
  return result;
}

function nameIn({ data }: PackageFile): unknown {
  const [context] = readKrmFile('package-context.yaml', data).objects;
  return isRecord(context?.value.data) ? context.value.data.name : undefined;
}
