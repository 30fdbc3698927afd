import {
  editKptfile,
  type Kptfile,
  type KptfileEdit,
  KptfileEditError,
  readKptfile,
} from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { PackageFiles } from '../../merge/package-files.ts';
import { KPTFILE_REQUEST_ANNOTATIONS } from '../../model/revision/lifecycle-annotations.ts';
import type { UpstreamLocation } from '../../upstream/upstream-reader.ts';

/**
 * The files with a Kptfile that names their upstream. `name` is the own name of a new package, whose Kptfile also loses the annotations
 * that request automatic steps: the author of the upstream cannot request approvals of other packages. Throws InvalidInput if there is no Kptfile, or none that can be read; `where` names the package in messages.
 */
export function withUpstream(
  files: PackageFiles,
  { repo, directory, ref, commit }: UpstreamLocation,
  where: string,
  name?: string,
): PackageFiles {
  const file = files.get('Kptfile');
  if (file === undefined) throw new SluiceError('InvalidInput', `there is no Kptfile in ${where}; a package has one`);
  const read = readKptfile(file.data);
  if (!read.ok)
    throw new SluiceError('InvalidInput', `the Kptfile of ${where} cannot be read: ${read.error.message}`, {
      cause: read.error,
    });
  const git = { repo, directory, ref };
  // Only kept: Porch adds none, and the default of an upgrade is the same without it.
  const updateStrategy = read.kptfile.upstream?.updateStrategy;
  const strategy = updateStrategy === undefined ? {} : { updateStrategy };
  try {
    const text = editKptfile(file.data.toString('utf8'), [
      ...(name === undefined ? [] : [{ op: 'setName', name } as const, ...removals(read.kptfile)]),
      { op: 'setUpstream', upstream: { type: 'git', git, ...strategy } },
      { op: 'setUpstreamLock', upstreamLock: { type: 'git', git: { ...git, commit } } },
    ]);
    return new Map(files).set('Kptfile', { ...file, data: Buffer.from(text) });
  } catch (error) {
    if (!(error instanceof KptfileEditError)) throw error;
    throw new SluiceError('InvalidInput', `the Kptfile of ${where} cannot be edited: ${error.message}`, {
      cause: error,
    });
  }
}

/** The annotations of a Kptfile that request automatic proposal or approval of its package. */
export function requestsIn(kptfile: Kptfile | undefined): string[] {
  const { annotations = {} } = kptfile?.metadata ?? {};
  return KPTFILE_REQUEST_ANNOTATIONS.filter((key) => Object.hasOwn(annotations, key));
}

function removals(kptfile: Kptfile): KptfileEdit[] {
  return requestsIn(kptfile).map((key) => ({ op: 'removeAnnotation', key }));
}
