import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { causesOf, invalidObject } from '../../resource/object/invalid-object.ts';
import type { DeleteOptions, PropagationPolicy } from '../../resource/storage/storage.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { Services } from './handler.ts';
import { decodeObject } from './object-input.ts';
import { countOf, invalidOptions } from './query-options.ts';

const deleteOptionsSchema = z.object({
  kind: z.literal('DeleteOptions').nullish(),
  apiVersion: z.string().nullish(),
  gracePeriodSeconds: z.int().nonnegative().nullish(),
  orphanDependents: z.boolean().nullish(),
  propagationPolicy: z.enum(['Orphan', 'Background', 'Foreground']).nullish(),
  preconditions: z.object({ uid: z.string().nullish(), resourceVersion: z.string().nullish() }).nullish(),
  dryRun: z.array(z.literal('All')).nullish(),
});

/** The requested deletion of an object. Grace periods are not supported, so that option is only validated. */
export interface RequestedDeletion extends DeleteOptions {
  readonly dryRun: boolean;
}

/** Reads the body of a delete, or its parameters if there is no body. */
export function readDeletion(request: ApiRequest, services: Services): RequestedDeletion {
  const { value } = decodeObject(request, services);
  const given = value ?? fromQuery(request.query);
  const result = deleteOptionsSchema.safeParse(given);
  if (!result.success) throw invalidObject('DeleteOptions.meta.k8s.io ""', causesOf(result.error.issues, given, false));
  const { orphanDependents, propagationPolicy, preconditions, dryRun } = result.data;
  if (typeof orphanDependents === 'boolean' && typeof propagationPolicy === 'string')
    throw invalidOptions(
      'DeleteOptions',
      'propagationPolicy',
      'Invalid value: orphanDependents and deletionPropagation cannot be both set',
    );
  const isDryRun = (dryRun ?? []).length > 0;
  if (isDryRun) request.isDryRun = true;
  return {
    propagationPolicy: propagationPolicy ?? policyOf(orphanDependents ?? undefined),
    uid: preconditions?.uid ?? undefined,
    resourceVersion: preconditions?.resourceVersion ?? undefined,
    dryRun: isDryRun || request.context.dryRun === true,
  };
}

function policyOf(orphanDependents: boolean | undefined): PropagationPolicy | undefined {
  return orphanDependents === undefined ? undefined : orphanDependents ? 'Orphan' : 'Background';
}

function fromQuery(query: URLSearchParams): z.input<typeof deleteOptionsSchema> {
  const orphan = query.get('orphanDependents');
  if (orphan !== null && orphan !== 'true' && orphan !== 'false')
    throw new SluiceError('BadRequest', 'the parameter orphanDependents must be "true" or "false"');
  return {
    gracePeriodSeconds: countOf(query, 'gracePeriodSeconds'),
    // The schema validates the word.
    propagationPolicy: (query.get('propagationPolicy') || undefined) as PropagationPolicy | undefined,
    orphanDependents: orphan === null ? undefined : orphan === 'true',
  };
}
