import { editKptfile, KptfileEditError, readKptfile } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { PackageFiles } from '../../merge/package-files.ts';
import type { UpstreamLocation } from '../../upstream/upstream-reader.ts';

/**
 * The files with a Kptfile that names their upstream; `name` is the package's own name, if it is to get a new one. Throws
 * InvalidInput if there is no Kptfile, or none that can be read; `where` names the package in messages.
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
      ...(name === undefined ? [] : [{ op: 'setName', name } as const]),
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
