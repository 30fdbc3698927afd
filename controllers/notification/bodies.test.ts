import { expect, test } from 'vitest';
import { bodyOf } from './bodies.ts';
import type { Message } from './message.ts';

const message: Message = {
  ...{ id: 'a1', time: '2026-01-02T03:04:05.000Z', type: 'Warning', reason: 'Degraded', count: 2 },
  message: '<!channel> [click](https://evil.example.com) & *bold*',
  object: { apiVersion: 'sluice.dev/v1alpha1', kind: 'DeliveryTarget', namespace: 'default', name: 'east' },
  source: 'controller:deployment-status',
};

test('a Slack message mentions no user and has no links', () => {
  expect(JSON.parse(bodyOf('Slack', message))).toEqual({
    text: ':warning: Degraded: DeliveryTarget default/east',
    blocks: [
      { type: 'section', text: { type: 'mrkdwn', text: ':warning: *Degraded: DeliveryTarget default/east*' } },
      {
        type: 'section',
        text: {
          ...{ type: 'plain_text', emoji: false },
          text: '&lt;!channel&gt; [click](https://evil.example.com) &amp; *bold*',
        },
      },
      {
        type: 'context',
        elements: [
          {
            ...{ type: 'plain_text', emoji: false },
            text: '2026-01-02T03:04:05.000Z · controller:deployment-status · occurrence 2',
          },
        ],
      },
    ],
  });
});

test('a Teams message is an Adaptive Card of text runs', () => {
  const { type, attachments } = JSON.parse(bodyOf('Teams', message));
  expect([type, attachments[0].contentType]).toEqual(['message', 'application/vnd.microsoft.card.adaptive']);
  expect(attachments[0].content).toMatchObject({
    ...{ type: 'AdaptiveCard', version: '1.4' },
    body: [
      { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: 'Degraded: DeliveryTarget default/east' }] },
      { type: 'RichTextBlock', inlines: [{ type: 'TextRun', text: message.message }] },
      { type: 'RichTextBlock' },
    ],
  });
});

test('JSON is the message itself', () => {
  expect(JSON.parse(bodyOf('JSON', message))).toEqual(message);
});
