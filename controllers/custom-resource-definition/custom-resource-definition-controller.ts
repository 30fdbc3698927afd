import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { toObject, watchKind } from '../../src/controller/source.ts';
import { writeStatus } from '../../src/controller/write-status.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Client } from '../../src/resource/client/client.ts';
import {
  type CustomResourceDefinition,
  customResourceDefinitionKind,
} from '../../src/resource/kinds/apiextensions/custom-resource-definition.ts';
import type { NewCondition } from '../../src/resource/object/condition.ts';
import type { ObjectKey, Stored } from '../../src/resource/object/object.ts';
import type { CustomKinds } from './custom-kinds.ts';
import { nameConflict } from './name-conflict.ts';

export interface CustomResourceDefinitionOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly kinds: CustomKinds;
}

type Definition = Stored<CustomResourceDefinition>;

/** Finalizer of a definition, which is removed when all its objects are deleted. */
const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';
const ACTOR = { name: 'controller:custom-resource-definition' };

/** Interval between two checks of a definition whose objects remain. */
const RETRY_MS = 2000;

/** Serves the kinds that users define, and deletes their objects with the definition. */
export function customResourceDefinitionController(options: CustomResourceDefinitionOptions): ControllerOptions {
  const { clock, kinds } = options;
  const client = options.client.as(ACTOR, 'controller');
  /** Definitions that wait for names to become free. */
  const refused = new Map<string, ObjectKey>();

  return {
    name: 'custom-resource-definition',
    sources: [
      watchKind(customResourceDefinitionKind, {
        map: (event) => (event.type === 'add' ? toObject(event) : [...toObject(event), ...refused.values()]),
      }),
    ],
    async reconcile(key) {
      try {
        const definition = await client.find(customResourceDefinitionKind, key);
        if (definition === undefined) return await forget(key.name);
        if (definition.metadata.deletionTimestamp !== undefined) return await end(definition);
        await establish(definition);
      } catch (error) {
        // Deleted meanwhile, which wakes this controller too.
        if (!isSluiceError(error, 'NotFound')) throw error;
      }
      return undefined;
    },
  };

  async function establish(given: Definition): Promise<void> {
    const { name } = given.metadata;
    const definition = await withFinalizer(given);
    const conflict = nameConflict(definition, kinds.kindsExcept(name));
    if (conflict === undefined) {
      refused.delete(name);
      kinds.serve(definition);
      await accept(definition);
      return;
    }
    refused.set(name, { name });
    const conditions: NewCondition[] = [{ type: 'NamesAccepted', status: 'False', ...conflict }];
    // A kind that is served already stays served under its old names.
    if (!kinds.isServed(name)) conditions.push(established('False', 'NotAccepted', 'not all names are accepted'));
    await writeStatus(client, customResourceDefinitionKind, definition, { conditions, now: clock.now() });
  }

  async function accept(definition: Definition): Promise<void> {
    const { names, versions } = definition.spec;
    const stored = definition.status?.storedVersions ?? [];
    const storage = versions.filter((version) => version.storage).map((version) => version.name);
    await writeStatus(client, customResourceDefinitionKind, definition, {
      conditions: [
        { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts', message: 'no conflicts found' },
        established('True', 'InitialNamesAccepted', 'the initial names have been accepted'),
      ],
      fields: { acceptedNames: names, storedVersions: [...new Set([...stored, ...storage])] },
      now: clock.now(),
    });
  }

  /** Set before the first object can be created, so that a deletion never leaves objects behind. */
  async function withFinalizer(definition: Definition): Promise<Definition> {
    const { finalizers = [] } = definition.metadata;
    return finalizers.includes(CLEANUP_FINALIZER)
      ? definition
      : setFinalizers(definition, [...finalizers, CLEANUP_FINALIZER]);
  }

  /** Deletes all objects of a definition, and then removes its finalizer. */
  async function end(definition: Definition): Promise<ReconcileResult | undefined> {
    const { name, finalizers = [] } = definition.metadata;
    refused.delete(name);
    if (!finalizers.includes(CLEANUP_FINALIZER)) return undefined;
    if (kinds.isServed(name) || nameConflict(definition, kinds.kindsExcept(name)) === undefined)
      kinds.serve(definition);
    const left = await kinds.removeObjects(name, { actor: ACTOR, face: 'controller' });
    if (left > 0) {
      const message = `CustomResource deletion is in progress: ${left} remaining`;
      const conditions = [
        { type: 'Terminating', status: 'True', reason: 'InstanceDeletionInProgress', message } as const,
      ];
      await writeStatus(client, customResourceDefinitionKind, definition, { conditions, now: clock.now() });
      return { requeueAfter: RETRY_MS, reason: 'objects that wait for their finalizers' };
    }
    kinds.withdraw(name);
    await setFinalizers(
      definition,
      finalizers.filter((finalizer) => finalizer !== CLEANUP_FINALIZER),
    );
    return undefined;
  }

  /** A user removed the finalizer: its objects are deleted nevertheless. */
  async function forget(name: string): Promise<ReconcileResult | undefined> {
    refused.delete(name);
    const left = await kinds.removeObjects(name, { actor: ACTOR, face: 'controller' });
    if (left > 0) return { requeueAfter: RETRY_MS, reason: 'objects that wait for their finalizers' };
    kinds.withdraw(name);
    return undefined;
  }

  function setFinalizers(definition: Definition, finalizers: readonly string[]): Promise<Definition> {
    const metadata = { ...definition.metadata, finalizers };
    return client.update(customResourceDefinitionKind, { ...definition, metadata });
  }
}

function established(status: 'True' | 'False', reason: string, message: string): NewCondition {
  return { type: 'Established', status, reason, message };
}
