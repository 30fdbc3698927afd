import type { IncomingMessage } from 'node:http';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';

export interface ReadThroughOptions {
  /** What the body is, for messages: `a webhook`. */
  readonly what: string;
  readonly maxBytes: number;
  /** Milliseconds within which the whole body must arrive. */
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** Passes a body on part by part. LimitExceeded, or BadRequest for a body that ends early. */
export async function readThrough(
  request: IncomingMessage,
  { what, maxBytes, timeoutMs, clock }: ReadThroughOptions,
  take: (chunk: Buffer) => void,
): Promise<void> {
  const tooLarge = () => new SluiceError('LimitExceeded', `${what} may have at most ${maxBytes} bytes`);
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw tooLarge();
  const cancel = clock.schedule(timeoutMs, () => request.destroy());
  let length = 0;
  try {
    // Leaving the loop must not destroy the socket: the response still has to be sent.
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > maxBytes) throw tooLarge();
      take(chunk);
    }
    if (!request.complete) throw new SluiceError('BadRequest', 'the request ended before its body did');
  } catch (error) {
    if (isSluiceError(error)) throw error;
    throw new SluiceError('BadRequest', 'the request ended before its body did', { cause: error });
  } finally {
    cancel();
  }
}
