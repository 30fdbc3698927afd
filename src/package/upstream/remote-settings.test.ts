import { expect, test } from 'vitest';
import { remoteSettings } from './remote-settings.ts';

function settings(annotations: Record<string, string>) {
  return remoteSettings({
    apiVersion: 'config.porch.kpt.dev/v1alpha1',
    kind: 'Repository',
    metadata: { name: 'edge', annotations },
  });
}

test('the default is the own client, without push options', () => {
  expect(settings({})).toEqual({ transport: 'auto', pushOptions: [] });
});

test('push options are one per line, with commas and spaces unchanged', () => {
  expect(settings({ 'sluice.dev/push-options': 'ci.skip\nmerge_request.title=a, b c\n' }).pushOptions).toEqual([
    'ci.skip',
    'merge_request.title=a, b c',
  ]);
});

test.each([
  [
    { 'sluice.dev/transport': 'ssh' },
    'repository edge: annotation sluice.dev/transport: "ssh" is neither auto nor git',
  ],
  [{ 'sluice.dev/push-options': 'a\u0000b' }, 'an option is longer than 1000 characters or has a control character'],
  [
    { 'sluice.dev/push-options': 'x'.repeat(1001) },
    'an option is longer than 1000 characters or has a control character',
  ],
  [{ 'sluice.dev/push-options': 'x\n'.repeat(21) }, 'more than 20 options'],
])('%j is refused', (annotations, message) => {
  expect(() => settings(annotations)).toThrow(message);
});
