import { expect, test } from 'vitest';
import { send, startTestServer, WIDGETS, widgetBody } from '../testing.ts';

test('an empty type is an absent one, and another type is refused', async () => {
  const api = await startTestServer();
  try {
    const post = async (type: object, name: string) => {
      return (await send(api, 'POST', WIDGETS, { ...widgetBody(name), ...type })).status;
    };
    expect(await post({ apiVersion: '', kind: '' }, 'a')).toBe(201);
    expect(await post({ kind: '' }, 'b')).toBe(201);
    expect(await post({ kind: 'Gadget' }, 'c')).toBe(400);
    expect(await post({ apiVersion: 'v2' }, 'd')).toBe(400);
  } finally {
    await api.stop();
  }
});
