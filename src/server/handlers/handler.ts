import type { KeyedMutex } from '../../foundation/concurrency/mutex.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { KubernetesObject, ObjectKey, Stored } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { User } from '../authentication/user.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { requireAllowed } from '../authorization/require-allowed.ts';
import type { ApiResponse, StreamedResponse } from '../http/answer.ts';
import type { ProtobufDecoder } from '../http/request-body.ts';
import type { Presenter } from '../presentation/presenter.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { FailureReporter } from '../request/report-failure.ts';
import type { ServedResources } from '../request/served-resources.ts';
import type { WatchFrames } from '../watch/watch-frames.ts';
import type { WatchStreams } from '../watch/watch-streams.ts';

/** A write that is about to reach a storage. */
export interface PlannedWrite {
  readonly user: User;
  readonly operation: 'create' | 'update' | 'delete';
  readonly kind: Kind;
  readonly subResource: string;
  /** As it will be; as it is where it is to be deleted. */
  readonly object: KubernetesObject;
  readonly old: Stored | undefined;
}

/**
 * Checks writes by rules beyond schema and storage; it may query a cluster or call webhooks. Rejects with the failure of the request:
 * a write is stored only after its admission resolved.
 */
export type Admission = (write: PlannedWrite) => Promise<void>;

/** Dependencies that all handlers share. */
export interface Services {
  readonly clock: Clock;
  readonly resources: ServedResources;
  readonly presenter: Presenter;
  readonly watches: WatchStreams;
  readonly frames: WatchFrames;
  readonly authorizer: Authorizer;
  readonly admit: Admission;
  readonly decodeProtobuf: ProtobufDecoder;
  /** Writes that lost to another writer are repeated one at a time for each object. */
  readonly retries: KeyedMutex;
  /** For failures while a response is being sent. */
  readonly reportFailure: FailureReporter;
}

/** Serves one verb on the objects of a resource. The request has passed all filters. */
export type Handler = (request: ApiRequest, services: Services) => Promise<ApiResponse | StreamedResponse>;

/** The key of the object that the URL names. */
export function keyOfRequest({ info, resource }: ApiRequest): ObjectKey {
  return resource.kind.namespaced ? { namespace: info.namespace, name: info.name } : { name: info.name };
}

/** Refuses the request if its user may not do this, too, at the same place. */
export function requireVerb(
  { info, user, aborted }: ApiRequest,
  { authorizer }: Services,
  verb: string,
): Promise<void> {
  return requireAllowed(authorizer, { ...info, verb, user }, aborted.signal);
}
