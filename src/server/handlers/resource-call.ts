import type { Clock } from '../../foundation/clock.ts';
import type { KubernetesObject, ObjectKey, Stored } from '../../resource/object/object.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { User } from '../authentication/user.ts';
import type { ServedResource, ServedResources } from '../exchange/served-resources.ts';
import type { Answer, StreamedAnswer } from '../http/answer.ts';
import type { DecodedText } from '../http/json-text.ts';
import type { Representation } from '../http/media-type.ts';
import type { RequestBody } from '../http/request-body.ts';
import type { RequestInfo } from '../http/request-path.ts';
import type { Status } from '../http/status.ts';
import type { Presenter } from '../presentation/presenter.ts';
import type { WatchFrames } from '../watch/watch-frames.ts';
import type { WatchStreams } from '../watch/watch-streams.ts';

/** A request for objects that was let in: what the handlers of the verbs work with. */
export interface ResourceCall {
  readonly info: RequestInfo;
  readonly query: URLSearchParams;
  readonly resource: ServedResource;
  readonly user: User;
  readonly userAgent: string;
  /** With `dryRun` as the client asked for it. */
  readonly context: RequestContext;
  readonly representation: Representation;
  /** Refuses the request if its user may not do this, too, at the same place. */
  readonly requireVerb: (verb: string) => Promise<void>;
  /** The body, which was read before the request got its place; empty for what only reads. */
  readonly body: RequestBody;
  readonly decode: (body: RequestBody) => DecodedText;
  /** Tells the client something that it did not ask for; kubectl prints it. */
  readonly warn: (text: string) => void;
  /** Tells what only the body says: which object it is about, or that it is only tried. */
  readonly note: (found: { readonly name?: string; readonly dryRun?: true }) => void;
}

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
 * Judges writes by rules that no schema and no storage knows; it may query a cluster or call webhooks. Rejects with the failure of the
 * request: a write is stored only after its admission resolved.
 */
export type Admission = (write: PlannedWrite) => Promise<void>;

/** What all handlers share. */
export interface Services {
  readonly clock: Clock;
  readonly resources: ServedResources;
  readonly presenter: Presenter;
  readonly watches: WatchStreams;
  readonly frames: WatchFrames;
  readonly admit: Admission;
  /** The Status of something that was thrown while an answer was under way already. */
  readonly failure: (error: unknown) => Status;
}

/** Answers one verb. */
export type Handler = (call: ResourceCall, services: Services) => Promise<Answer | StreamedAnswer>;

/** The key of the object that a URL names. */
export function keyOfCall({ info, resource }: ResourceCall): ObjectKey {
  return resource.kind.namespaced ? { namespace: info.namespace, name: info.name } : { name: info.name };
}
