import { setTimeout as pause } from 'node:timers/promises';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { AFFIRM_ANNOTATION } from '../../package/api/objects/revision-object.ts';
import type { IssuedCondition } from '../../package/model/gates/verdict.ts';
import { type PackageRevision, packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';
import type { Access } from './access.ts';
import { findRevision } from './find-revision.ts';

type Conditions = NonNullable<NonNullable<PackageRevision['status']>['conditions']>;

/** Another writer, such as a controller, may write at the same moment. */
const ATTEMPTS = 5;
const RETRY_INTERVAL_MS = 100;

/**
 * Sets a condition of a revision for its current content. The API treats an unchanged condition as merely carried along, unless the
 * request affirms it.
 */
export async function writeCondition(access: Access, name: string, condition: IssuedCondition): Promise<void> {
  const given = (before: Conditions) => {
    const at = before.findIndex(({ type }) => type === condition.type);
    return at === -1 ? [...before, condition] : before.with(at, condition);
  };
  await writeConditions(access, name, given, condition.type);
}

/** Removes a condition. NotFound, with the types that are alike, if the revision has none of this type. */
export async function withdrawCondition(access: Access, name: string, type: string): Promise<void> {
  await writeConditions(access, name, (conditions) => {
    const rest = conditions.filter((one) => one.type !== type);
    if (rest.length < conditions.length) return rest;
    const [alike] = nearMisses(
      type,
      conditions.map((one) => one.type),
    );
    const hint = alike === undefined ? '' : `; did you mean ${JSON.stringify(alike)}?`;
    throw new SluiceError('NotFound', `${name} has no condition ${JSON.stringify(type)}${hint}`);
  });
}

async function writeConditions(
  access: Access,
  name: string,
  change: (conditions: Conditions) => Conditions,
  affirmed?: string,
): Promise<void> {
  const { client, isSluice } = access;
  for (let attempt = 1; ; attempt += 1) {
    const object = await findRevision(access, name);
    const conditions = change(object.status?.conditions ?? []);
    const next = { ...object, status: { publishTimestamp: null, ...object.status, conditions } };
    try {
      // Porch has no sub-resource for it and accepts conditions as part of the object.
      if (isSluice) await client.updateStatus(packageRevisionKind, affirming(next, affirmed));
      else await client.update(packageRevisionKind, next);
      return;
    } catch (error) {
      const lost = isSluiceError(error, 'Conflict') || isSluiceError(error, 'Busy');
      if (!lost || attempt >= ATTEMPTS) throw error;
      await pause(RETRY_INTERVAL_MS * attempt);
    }
  }
}

function affirming(object: Stored<PackageRevision>, type: string | undefined): Stored<PackageRevision> {
  if (type === undefined) return object;
  const annotations = { ...object.metadata.annotations, [AFFIRM_ANNOTATION]: type };
  return { ...object, metadata: { ...object.metadata, annotations } };
}
