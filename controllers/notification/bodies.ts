import { escapeSlack, type Format } from './escape-value.ts';
import type { Message } from './message.ts';
import { type Template, withValues } from './template.ts';

/** The body of a webhook. Texts of events are data in every form: they cannot mention users, and contain no links or markup. */
export function bodyOf(format: Format, message: Message, template?: Template): string {
  if (template !== undefined) return JSON.stringify(withValues(template, format, message));
  const body = format === 'Slack' ? slack(message) : format === 'Teams' ? adaptiveCard(message) : message;
  return JSON.stringify(body);
}

/** One line about an event. */
export function titleOf({ reason, object }: Message): string {
  return `${reason}: ${object.kind} ${object.namespace}/${object.name}`;
}

/** https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks */
function slack(message: Message): object {
  const title = escapeSlack(titleOf(message));
  const text = escapeSlack(message.message);
  const sign = message.type === 'Warning' ? ':warning: ' : '';
  return {
    text: `${sign}${title}`,
    blocks: [
      { type: 'section', text: { type: 'mrkdwn', text: `${sign}*${title}*` } },
      ...(text === '' ? [] : [{ type: 'section', text: { type: 'plain_text', emoji: false, text } }]),
      { type: 'context', elements: [{ type: 'plain_text', emoji: false, text: escapeSlack(footer(message)) }] },
    ],
  };
}

/** A message of a Teams workflow, with text runs, which interpret no markup. */
function adaptiveCard(message: Message): object {
  const line = (text: string, style: object = {}) => ({
    type: 'RichTextBlock',
    inlines: [{ type: 'TextRun', text, ...style }],
  });
  const color = message.type === 'Warning' ? 'attention' : 'default';
  const content = {
    $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
    type: 'AdaptiveCard',
    version: '1.4',
    body: [
      line(titleOf(message), { weight: 'bolder', size: 'medium', color }),
      ...(message.message === '' ? [] : [line(message.message)]),
      line(footer(message), { isSubtle: true, size: 'small' }),
    ],
  };
  return {
    type: 'message',
    attachments: [{ contentType: 'application/vnd.microsoft.card.adaptive', contentUrl: null, content }],
  };
}

function footer({ time, source, count }: Message): string {
  return [time, source, ...(count > 1 ? [`occurrence ${count}`] : [])].filter((part) => part !== '').join(' · ');
}
