// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how placeholders are written.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { notificationKind } from '../../src/resource/kinds/sluice/notification.ts';
import { runs } from '../../test/support/runs.ts';
import { bodyOf } from './bodies.ts';
import type { Message } from './message.ts';

const message: Message = {
  ...{ id: 'a1', time: '2026-01-02T03:04:05.000Z', type: 'Warning', reason: 'Degraded', count: 2 },
  message: '<!channel> "x", [click](https://evil.example.com) & ${event.reason}\n*bold*',
  object: { apiVersion: 'sluice.dev/v1alpha1', kind: 'DeliveryTarget', namespace: 'default', name: 'east' },
  source: 'controller:deployment-status',
};

test('placeholders become parts of strings, and other values stay', () => {
  const template = {
    text: '${object.kind} ${object.name}: ${event.count}',
    list: [1, true, { id: '${event.id}' }],
    cost: '$${5}',
  };
  expect(JSON.parse(bodyOf('JSON', message, template))).toEqual({
    ...{ text: 'DeliveryTarget east: 2', list: [1, true, { id: 'a1' }], cost: '${5}' },
  });
});

test('a value is never searched for placeholders', () => {
  expect(JSON.parse(bodyOf('JSON', message, { text: '${event.message}' }))).toEqual({ text: message.message });
});

test('a value in a Slack template mentions no user and is no link', () => {
  const template = { text: '<https://runbooks.example.com|Runbook> ${event.message}' };
  expect(JSON.parse(bodyOf('Slack', message, template)).text).toBe(
    '<https://runbooks.example.com|Runbook> &lt;!channel&gt; "x", [click](https://evil.example.com) &amp; ${event.reason}\n*bold*',
  );
});

test('a value in a card of Teams is no link, and a text run shows it as it is', () => {
  const template = {
    body: [
      { type: 'TextBlock', text: '${event.message}' },
      { type: 'TextRun', text: '${event.message}' },
    ],
  };
  const { body } = JSON.parse(bodyOf('Teams', message, template));
  expect(body[0].text).toBe('\\<!channel> "x", \\[click\\](https://evil.example.com) & ${event.reason}\n\\*bold\\*');
  expect(body[1].text).toBe(message.message);
});

test('a value in an address is encoded', () => {
  const template = { url: 'https://logs.example.com/search?q=${event.message}' };
  const { url } = JSON.parse(bodyOf('Slack', message, template));
  expect(new URL(url)).toMatchObject({ host: 'logs.example.com', hash: '' });
  expect(new URL(url).searchParams.get('q')).toBe(message.message);
});

const texts = fc.array(fc.constantFrom(...'ab"\\{}$<>&[]()*_:/\n\u0000\ud800é')).map((parts) => parts.join(''));

test('no value changes the structure of the body', () => {
  const template = {
    a: { b: ['${event.message}', 'x${event.message}y'] },
    c: 'https://x.example.com/${event.message}',
  };
  fc.assert(
    fc.property(texts, fc.constantFrom('JSON', 'Slack', 'Teams'), (text, format) => {
      const body = JSON.parse(bodyOf(format, { ...message, message: text }, template));
      const [first, second] = body.a.b;
      const types = [typeof first, typeof second, typeof body.c, Object.keys(body).join()].join(' ');
      if (types !== 'string string string a,c' || (format === 'JSON' && first !== text))
        throw new Error(JSON.stringify(body));
    }),
    { numRuns: runs(200) },
  );
});

test.each([
  [
    { blocks: [{ text: 'by ${secret.token}' }] },
    'spec.webhook.template.blocks[0].text: Invalid value: "by ${secret.token}": has a placeholder of "secret.token"; known are event.id,',
  ],
  [{ text: '${event.constructor}' }, 'spec.webhook.template.text: '],
  [{ text: '${event.reason' }, 'spec.webhook.template.text: '],
  [{ text: '${}' }, 'spec.webhook.template.text: '],
  [{ '${event.reason}': 1 }, 'is a key with a placeholder'],
  [{ text: 'x'.repeat(20_000) }, 'must have at most 16384 characters as JSON'],
  [{ text: '${event.id}'.repeat(33) }, 'must have at most 32 placeholders'],
  [JSON.parse(`{"a":${'['.repeat(30)}${']'.repeat(30)}}`), 'must have at most 16 levels'],
])('the template %j is refused', (template, problem) => {
  const webhook = { url: 'https://a.example.com', template };
  const object = { metadata: { name: 'a' }, spec: { events: [{}], webhook } };
  expect(() => notificationKind.parse(object)).toThrow(problem);
});

test('__proto__ is a key like any other', () => {
  const webhook = JSON.parse('{"url":"https://a.example.com","template":{"text":{"__proto__":{"x":"${event.id}"}}}}');
  const { object } = notificationKind.parse({ metadata: { name: 'a' }, spec: { events: [{}], webhook } });
  const body = bodyOf('JSON', message, object.spec.webhook?.template);
  expect(({} as { x?: string }).x).toBeUndefined();
  expect(JSON.parse(body)).toHaveProperty('text');
});
