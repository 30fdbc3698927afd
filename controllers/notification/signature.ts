import { createHmac } from 'node:crypto';

/**
 * Headers that prove who sent a body: that of Sluice, over the time and the body, so that a receiver can refuse repetitions, and that of
 * GitHub, which many receivers verify.
 */
export function signatureHeaders(body: string, secret: string, now: number): Record<string, string> {
  const seconds = Math.floor(now / 1000);
  return {
    'x-sluice-timestamp': String(seconds),
    'x-sluice-signature': `sha256=${hmac(secret, `${seconds}.${body}`)}`,
    'x-hub-signature-256': `sha256=${hmac(secret, body)}`,
  };
}

function hmac(secret: string, text: string): string {
  return createHmac('sha256', secret).update(text).digest('hex');
}
