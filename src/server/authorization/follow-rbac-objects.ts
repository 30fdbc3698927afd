import { Informer } from '../../controller/informer.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { RbacIndex } from './rbac-index.ts';
import { RBAC_PLURALS, type RbacKind, type RoleBinding } from './rbac-objects.ts';

export interface FollowOptions {
  /** May read all objects of the four kinds. */
  readonly client: Client;
  readonly kinds: Readonly<Record<RbacKind, Kind>>;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
}

export interface Following {
  /** Resolves when the index contains all objects; until then it grants less than the objects do, never more. */
  whenSynced(): Promise<void>;
  stop(): Promise<void>;
}

/** Keeps an index equal to the RBAC objects of a registry. */
export function followRbacObjects(index: RbacIndex, { kinds, ...options }: FollowOptions): Following {
  const informers = (Object.keys(RBAC_PLURALS) as RbacKind[]).map((kind) => {
    const informer = new Informer({ ...options, kind: kinds[kind] });
    informer.addHandler(({ type, object }) => {
      if (type === 'delete') index.remove(kind, object);
      else index.put(kind, object as unknown as RoleBinding);
    });
    informer.start();
    return informer;
  });
  return {
    async whenSynced() {
      await Promise.all(informers.map((informer) => informer.whenSynced()));
    },
    async stop() {
      await Promise.all(informers.map((informer) => informer.stop()));
    },
  };
}
