import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { listen } from './listener.ts';

const local = {
  host: '127.0.0.1',
  port: 0,
  onError: (error: unknown) => {
    throw error;
  },
};

test('connections without a request under way do not hold up the end', async () => {
  const listener = await listen({ ...local, handle: (_request, response) => response.end('ok') });
  const silent = connect(listener.port, '127.0.0.1');
  const kept = connect(listener.port, '127.0.0.1');
  kept.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await new Promise((resolve) => kept.once('data', resolve));
  const ended = Promise.all(
    [silent, kept].map((socket) => new Promise((resolve) => socket.resume().once('close', resolve))),
  );
  // Far longer than the test may take.
  await listener.stop(600_000);
  await ended;
});

test('a port that is taken is told with what to do', async () => {
  const first = await listen({ ...local, handle: () => undefined });
  const second = listen({ ...local, port: first.port, handle: () => undefined });
  await expect(second).rejects.toMatchObject({
    code: 'Unavailable',
    message: `cannot listen on 127.0.0.1:${first.port}: the port is in use; choose another one, or 0 for a free one`,
  });
  await first.stop();
});

test('the address is told as a URL', async () => {
  const listener = await listen({ ...local, handle: () => undefined });
  expect(listener.url).toBe(`http://127.0.0.1:${listener.port}`);
  expect(listener.port).toBeGreaterThan(0);
  await listener.stop();
});
