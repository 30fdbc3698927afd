import { expect, test } from 'vitest';
import { listenAddress, webhookAddress } from './listen-address.ts';

test('an address is a host and a port, with TLS unless loopback does without', () => {
  expect(listenAddress('127.0.0.1:6443')).toEqual({ host: '127.0.0.1', port: 6443, tls: true });
  expect(listenAddress(':0')).toEqual({ host: '127.0.0.1', port: 0, tls: true });
  expect(listenAddress('[::1]:1')).toEqual({ host: '::1', port: 1, tls: true });
  expect(listenAddress('https://sluice.example.com:443')).toEqual({ host: 'sluice.example.com', port: 443, tls: true });
  expect(listenAddress('http://127.0.0.2:80')).toEqual({ host: '127.0.0.2', port: 80, tls: false });
});

test('what is no address, or would send tokens in the clear, is refused', () => {
  for (const text of ['', '6443', 'host', 'host:65536', 'a b:1', '::1:1', '[host]:1', 'ftp://x:1', 'x:1/path'])
    expect(() => listenAddress(text)).toThrow(/must be host:port/);
  for (const text of ['http://0.0.0.0:80', 'http://10.0.0.1:80', 'http://example.com:80', 'http://127.evil.example:80'])
    expect(() => listenAddress(text)).toThrow(/loopback addresses only/);
});

test('webhooks are served without TLS, on any address', () => {
  expect(webhookAddress('0.0.0.0:8090')).toEqual({ host: '0.0.0.0', port: 8090, tls: false });
  expect(webhookAddress('http://[::]:0')).toEqual({ host: '::', port: 0, tls: false });
  expect(() => webhookAddress('8090')).toThrow('--webhook-listen "8090" must be host:port');
  expect(() => webhookAddress('https://x:1')).toThrow('it is served without TLS');
});
