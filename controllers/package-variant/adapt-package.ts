import { gatesOf, type Kptfile, type KptfileEdit, readKptfile } from '../../kptfile-schema/index.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { readResources } from '../../src/function/resource/read-resources.ts';
import { writeResources } from '../../src/function/resource/write-resources.ts';
import { ownNameOf, packageContext } from '../../src/package/plan/create/package-context.ts';
import type { Adaptation } from '../../src/package/upstream/revision-source.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import { inject, type ReadSelected } from './injection.ts';
import { pipelineEdits } from './pipeline-functions.ts';

const CONTEXT = 'package-context.yaml';

/**
 * The changes by which a package becomes that of the variant: package context, pipeline and injected objects. Without effect on a package
 * that has them. Throws InvalidInput, with the file, for a package that cannot be adapted.
 */
export async function adaptPackage(
  { metadata: { name }, spec }: PackageVariant,
  files: ReadonlyMap<string, Uint8Array>,
  read: ReadSelected,
): Promise<Adaptation> {
  const kptfile = kptfileIn(files);
  const context = contextEdit(spec, files);
  const injection = await inject(files, spec.injectors ?? [], read);
  if (injection.problem !== undefined) throw new SluiceError('InvalidInput', injection.problem);
  const present = new Set(gatesOf(kptfile));
  const gates = injection.gates.filter((type) => !present.has(type));
  return {
    files: new Map([...context, ...injection.files]),
    kptfile: [
      ...pipelineEdits(name, spec.pipeline, kptfile),
      ...gates.map((conditionType): KptfileEdit => ({ op: 'addGate', conditionType })),
    ],
    conditions: injection.conditions,
  };
}

/** True if it would change the content of a package; conditions are none of it. */
export function changesContent({ files, kptfile }: Pick<Adaptation, 'files' | 'kptfile'>): boolean {
  return files.size + kptfile.length > 0;
}

function kptfileIn(files: ReadonlyMap<string, Uint8Array>): Kptfile {
  const data = files.get('Kptfile');
  if (data === undefined) throw new SluiceError('InvalidInput', 'the package has no Kptfile; add one');
  const result = readKptfile(data);
  if (!result.ok)
    throw new SluiceError('InvalidInput', `the Kptfile cannot be read: ${result.error.message}`, {
      cause: result.error,
    });
  return result.kptfile;
}

function contextEdit(
  { packageContext: wanted, downstream }: PackageVariant['spec'],
  files: ReadonlyMap<string, Uint8Array>,
): Map<string, Uint8Array> {
  const { data = {}, removeKeys = [] } = wanted ?? {};
  if (Object.keys(data).length + removeKeys.length === 0) return new Map();
  const present = files.get(CONTEXT);
  const text = present === undefined ? packageContext(ownNameOf(downstream.package)) : Buffer.from(present).toString();
  const before = readResources(new Map([[CONTEXT, text]]));
  const context = before.resources.find(({ kind, name }) => kind === 'ConfigMap' && name === 'kptfile.kpt.dev');
  if (context === undefined)
    throw new SluiceError('InvalidInput', `${CONTEXT} contains no ConfigMap kptfile.kpt.dev; remove the file`);
  for (const [key, value] of Object.entries(data))
    if (context.get(['data', key]) !== value) context.set(['data', key], value);
  // A key that is set and removed is removed, as in Porch.
  for (const key of removeKeys) context.delete(['data', key]);
  const after = writeResources(before, before.resources).get(CONTEXT) ?? text;
  return present !== undefined && after === text ? new Map() : new Map([[CONTEXT, Buffer.from(after)]]);
}
