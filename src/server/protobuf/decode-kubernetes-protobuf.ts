import { WireType } from '@bufbuild/protobuf/wire';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { PROTOBUF_TYPE } from '../http/request-body.ts';
import { decodeMessage } from './decode-message.ts';
import { lease } from './messages/coordination.ts';
import { configMap, event, eventsEvent, namespace, secret, serviceAccount } from './messages/core.ts';
import type { Message } from './messages/message.ts';
import { deleteOptions, status } from './messages/meta.ts';
import { clusterRole, role, roleBinding } from './messages/rbac.ts';
import {
  selfSubjectAccessReview,
  selfSubjectReview,
  selfSubjectRulesReview,
  subjectAccessReview,
  tokenReview,
} from './messages/reviews.ts';
import { malformed, WireReader } from './wire-reader.ts';

/** The first bytes of every body: `k8s` and a zero. */
const MAGIC = Buffer.from('k8s\0');
const RBAC = 'rbac.authorization.k8s.io/v1';
const AUTHORIZATION = 'authorization.k8s.io/v1';
const AUTHENTICATION = 'authentication.k8s.io/v1';

const KINDS: ReadonlyMap<string, Message> = new Map([
  ['v1 Namespace', namespace],
  ['v1 Secret', secret],
  ['v1 ConfigMap', configMap],
  ['v1 Event', event],
  ['v1 ServiceAccount', serviceAccount],
  ['v1 Status', status],
  ['events.k8s.io/v1 Event', eventsEvent],
  ['coordination.k8s.io/v1 Lease', lease],
  [`${RBAC} Role`, role],
  [`${RBAC} ClusterRole`, clusterRole],
  [`${RBAC} RoleBinding`, roleBinding],
  [`${RBAC} ClusterRoleBinding`, roleBinding],
  [`${AUTHORIZATION} SelfSubjectAccessReview`, selfSubjectAccessReview],
  [`${AUTHORIZATION} SubjectAccessReview`, subjectAccessReview],
  [`${AUTHORIZATION} LocalSubjectAccessReview`, subjectAccessReview],
  [`${AUTHORIZATION} SelfSubjectRulesReview`, selfSubjectRulesReview],
  [`${AUTHENTICATION} TokenReview`, tokenReview],
  [`${AUTHENTICATION} SelfSubjectReview`, selfSubjectReview],
]);

/**
 * Decodes an object of a built-in Kubernetes kind from protobuf, which some Go clients send, into the value that its JSON has.
 * Throws BadRequest for bytes that are not such a body, UnsupportedMediaType for other kinds.
 */
export function decodeKubernetesProtobuf(bytes: Uint8Array): Record<string, unknown> {
  const { apiVersion, kind, raw } = openEnvelope(bytes);
  const type = messageFor(apiVersion, kind);
  if (type === undefined)
    throw unsupported(`objects of ${quoted(apiVersion)} ${quoted(kind)} are not read in protobuf; send JSON`);
  if (raw === undefined) throw malformed('the envelope is empty');
  return { apiVersion, kind, ...decodeMessage(raw, type) };
}

/** DeleteOptions is not in KINDS, since clients send it with the group of the object to delete. */
function messageFor(apiVersion: string, kind: string): Message | undefined {
  return kind === 'DeleteOptions' ? deleteOptions : KINDS.get(`${apiVersion} ${kind}`);
}

interface Envelope {
  apiVersion: string;
  kind: string;
  raw: Uint8Array | undefined;
}

/** The message runtime.Unknown after the magic bytes. */
function openEnvelope(bytes: Uint8Array): Envelope {
  if (!MAGIC.equals(bytes.subarray(0, MAGIC.length))) throw malformed('it does not start with "k8s" and a zero byte');
  const reader = new WireReader(bytes.subarray(MAGIC.length));
  const envelope: Envelope = { apiVersion: '', kind: '', raw: undefined };
  while (!reader.atEnd) {
    const { number, wireType } = reader.tag();
    if (number > 4) reader.skip(wireType);
    else if (wireType !== WireType.LengthDelimited) throw malformed('the envelope has a field of the wrong wire type');
    else if (number === 1) Object.assign(envelope, typeMeta(reader.bytes()));
    else if (number === 2) envelope.raw = reader.bytes();
    else if (number === 3) expectNoEncoding(reader.text());
    else expectProtobuf(reader.text());
  }
  return envelope;
}

function typeMeta(bytes: Uint8Array): { apiVersion: string; kind: string } {
  const reader = new WireReader(bytes);
  const type = { apiVersion: '', kind: '' };
  while (!reader.atEnd) {
    const { number, wireType } = reader.tag();
    if (number > 2) reader.skip(wireType);
    else if (wireType !== WireType.LengthDelimited) throw malformed('the type in the envelope must be text');
    else type[number === 1 ? 'apiVersion' : 'kind'] = reader.text();
  }
  return type;
}

function expectNoEncoding(encoding: string): void {
  if (encoding !== '') throw unsupported(`the content encoding ${quoted(encoding)} in the envelope is not known`);
}

function expectProtobuf(type: string): void {
  if (type !== '' && type !== PROTOBUF_TYPE)
    throw unsupported(`the content type ${quoted(type)} in the envelope is not read; send JSON as a body of its own`);
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}

function unsupported(message: string): SluiceError {
  return new SluiceError('UnsupportedMediaType', message);
}
