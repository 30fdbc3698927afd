import { readFileSync } from 'node:fs';
import { loadAll } from 'js-yaml';
import { expect, test } from 'vitest';
import { notificationKind } from '../../src/resource/kinds/sluice/notification.ts';

const root = new URL('../../', import.meta.url);

test('the examples of notifications are valid, also those of the documentation', () => {
  const page = readFileSync(new URL('docs/notifications.md', root), 'utf8');
  const blocks = [...page.matchAll(/```yaml\n(.*?)```/gs)].map(([, text = '']) => text);
  const files = readFileSync(new URL('examples/notifications/notifications.yaml', root), 'utf8');
  const objects = [...blocks, files].flatMap((text) => loadAll(text));
  expect(objects).toHaveLength(7);
  for (const object of objects) expect(notificationKind.parse(object).unknownFields).toEqual([]);
});
