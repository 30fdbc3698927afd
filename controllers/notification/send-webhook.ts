import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { isOnThisMachine } from '../../src/git/open/open-location.ts';
import type { Client } from '../../src/resource/client/client.ts';
import type { Notification } from '../../src/resource/kinds/sluice/notification.ts';
import { bodyOf } from './bodies.ts';
import type { Message } from './message.ts';
import { type Attempt, attemptOf, type Post } from './receiver.ts';
import { secretValue } from './secret-value.ts';
import { signatureHeaders } from './signature.ts';

export interface SendContext {
  readonly client: Client;
  readonly post: Post;
  readonly namespace: string;
  readonly now: number;
  readonly signal: AbortSignal;
}

/** Posts a message to the address of a Notification. Throws what prevents the request. */
export async function sendWebhook(
  webhook: NonNullable<Notification['spec']['webhook']>,
  message: Message,
  { client, post, namespace, now, signal }: SendContext,
): Promise<Attempt> {
  const read = (reference: { name: string; key: string }, field: string) =>
    secretValue(client, namespace, reference, `which spec.webhook.${field} refers to`, signal);
  const { urlSecretRef, secretRef, caSecretRef } = webhook;
  const url = urlSecretRef === undefined ? (webhook.url ?? '') : await read(urlSecretRef, 'urlSecretRef');
  // The right to use one is checked where it can be read: when the Notification is written.
  if (urlSecretRef !== undefined && isOnThisMachine(URL.parse(url)?.origin ?? url))
    throw new SluiceError(
      'Refused',
      'cannot send: the address in the Secret of spec.webhook.urlSecretRef is on the machine of the server; write it into spec.webhook.url',
    );
  const secret = secretRef === undefined ? undefined : await read(secretRef, 'secretRef');
  const authorities = caSecretRef === undefined ? undefined : await read(caSecretRef, 'caSecretRef');
  const body = bodyOf(webhook.format, message, webhook.template);
  const headers = {
    'x-sluice-event': message.reason.replace(/[^\x20-\x7e]/g, '').slice(0, 100),
    'x-sluice-delivery': message.id,
    ...(secret === undefined ? {} : signatureHeaders(body, secret, now)),
  };
  const response = await post({ url, headers, body, authorities, signal });
  // The path can be a credential.
  return attemptOf(response, URL.parse(url)?.origin ?? 'the receiver', 'spec.webhook.secretRef');
}
