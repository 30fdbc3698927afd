import fs, { statSync } from 'node:fs';
import { join } from 'node:path';
import git from 'isomorphic-git';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import { DamageError, HOW_TO_REPAIR } from '../../errors.ts';
import type { ObjectType } from '../../git-repository.ts';
import type { ReadLoose } from '../../objects/files/file-source.ts';
import { MAX_OBJECT_BYTES, objectTooLarge } from '../../objects/object-source.ts';

/** Reads the loose objects of a repository by isomorphic-git. Throws DamageError and LimitExceeded. */
export function looseReader(gitDir: string): ReadLoose {
  return async (oid) => {
    // isomorphic-git would look into the packs next.
    const file = statSync(join(gitDir, 'objects', oid.slice(0, 2), oid.slice(2)), { throwIfNoEntry: false });
    if (file === undefined) return undefined;
    try {
      const { type, object } = await git.readObject({ fs, gitdir: gitDir, oid, format: 'content', cache: {} });
      const data = Buffer.from(object as Uint8Array);
      if (data.length > MAX_OBJECT_BYTES) throw objectTooLarge(oid, data.length);
      return { type: type as ObjectType, data };
    } catch (error) {
      if (error instanceof SluiceError) throw error;
      if (error instanceof git.Errors.NotFoundError) return undefined;
      throw new DamageError(`object ${oid} cannot be read: ${messageOf(error).slice(0, 300)}. ${HOW_TO_REPAIR}`, error);
    }
  };
}
