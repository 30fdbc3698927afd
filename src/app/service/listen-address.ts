import { isIP } from 'node:net';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** The address of the API. */
export interface ListenAddress {
  readonly host: string;
  /** 0 for a free one. */
  readonly port: number;
  readonly tls: boolean;
}

/**
 * Reads `--listen`: `host:port`, `:port`, `[::1]:port`, with `https://` or `http://` before it. Without TLS only loopback addresses are
 * taken: tokens would be readable on the way. Throws InvalidInput.
 */
export function listenAddress(text: string): ListenAddress {
  const { host, port, scheme = 'https://' } = parse('--listen', text);
  const tls = scheme === 'https://';
  if (!tls && !isLoopback(host))
    throw new SluiceError(
      'InvalidInput',
      `--listen ${JSON.stringify(text)}: without TLS the API is served on loopback addresses only; leave http:// out`,
    );
  return { host, port, tls };
}

/** Reads `--webhook-listen`, whose address is served without TLS: messages are authenticated by signatures. Throws InvalidInput. */
export function webhookAddress(text: string): ListenAddress {
  const { host, port, scheme } = parse('--webhook-listen', text);
  if (scheme === 'https://')
    throw new SluiceError(
      'InvalidInput',
      `--webhook-listen ${JSON.stringify(text)}: it is served without TLS, for an ingress in front of it; leave https:// out`,
    );
  return { host, port, tls: false };
}

function parse(option: string, text: string) {
  const [, scheme, bracketed, plain, port] =
    /^(https?:\/\/)?(?:\[([0-9a-f:.]+)\]|([^:/[\]\s]*)):(\d{1,5})$/i.exec(text) ?? [];
  if (port === undefined || Number(port) > 65_535 || (bracketed !== undefined && isIP(bracketed) !== 6))
    throw new SluiceError(
      'InvalidInput',
      `${option} ${JSON.stringify(text)} must be host:port, such as 127.0.0.1:6443 or [::1]:0 (0 takes a free port)`,
    );
  return { scheme: scheme?.toLowerCase(), host: bracketed ?? (plain || '127.0.0.1'), port: Number(port) };
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
