// biome-ignore-all lint/suspicious/noTemplateCurlyInString: this is how placeholders are written.
import { z } from 'zod';
import { clusterRules } from '../../schema/cluster-rule.ts';
import { defineKind } from '../../schema/define-kind.ts';
import type { ObjectOf } from '../../schema/kind.ts';
import { labelSelectorSchema } from '../../selector/label-selector.ts';
import { AGE_COLUMN, NAME_COLUMN, READY_COLUMN } from '../common/columns.ts';
import { conditionsSchema, observedGenerationSchema } from '../common/condition-schema.ts';
import { httpUrlSchema } from '../common/http-url.ts';
import { serverTimeSchema } from '../common/time-schema.ts';
import { messageTemplateSchema } from './message-template.ts';

const MAX_RULES = 20;
const MAX_NAMES = 50;
/** Events whose identity the status keeps. */
const MAX_RECENT = 64;

const ONE_RECEIVER = 'must have exactly one of webhook and commitStatus';
const ONE_ADDRESS = 'must have exactly one of url and urlSecretRef';

const secretKeyRef = (what: string, key: string) =>
  z
    .object({
      name: z.string().min(1).max(253).describe('Name of a Secret in the same namespace.'),
      key: z.string().min(1).max(253).default(key).describe(`Key of the Secret. Default: ${key}.`),
    })
    .describe(what);

const pattern = z
  .string()
  .max(253)
  .regex(/^[^*\s]*\*?$/, 'must be a name, or the start of one followed by "*"')
  .min(1);

const rule = z.object({
  kinds: z
    .array(z.enum(['DeliveryTarget', 'PackageRevision', 'Repository']))
    .max(MAX_NAMES)
    .optional()
    .describe('Kinds of the objects. Defaults to all.'),
  names: z
    .array(pattern)
    .max(MAX_NAMES)
    .optional()
    .describe('Names of the objects, or prefixes followed by "*". Defaults to all.'),
  reasons: z
    .array(pattern)
    .max(MAX_NAMES)
    .optional()
    .describe('Reasons of the events, or prefixes followed by "*". Defaults to all.'),
  types: z
    .array(z.enum(['Normal', 'Warning']))
    .max(2)
    .optional()
    .describe('Types of the events. Defaults to both.'),
  selector: labelSelectorSchema.optional().describe('Label selector for the objects. Defaults to all.'),
});

const webhook = z
  .object({
    url: httpUrlSchema.optional().describe('Address that each message is posted to.'),
    urlSecretRef: secretKeyRef(
      'Secret with the address, for receivers whose addresses are credentials, such as Slack and Teams.',
      'url',
    ).optional(),
    format: z
      .enum(['JSON', 'Slack', 'Teams'])
      .default('JSON')
      .describe('Form of the body: JSON with the fields of the event, a Slack message, or an Adaptive Card for Teams.'),
    template: messageTemplateSchema
      .optional()
      .describe(
        'Body instead of the one of the format, which then only says how values are escaped: JSON in whose strings placeholders such as ${event.reason} and ${object.name} stand for fields of the event.',
      ),
    secretRef: secretKeyRef(
      'Secret that signs each message: X-Sluice-Signature and X-Hub-Signature-256 (HMAC with SHA-256).',
      'token',
    ).optional(),
    caSecretRef: secretKeyRef(
      'Secret with certificates (PEM) of authorities that are trusted for the receiver.',
      'ca.crt',
    ).optional(),
  })
  .refine(({ url, urlSecretRef }) => (url === undefined) !== (urlSecretRef === undefined), ONE_ADDRESS)
  .meta(clusterRules(['has(self.url) != has(self.urlSecretRef)', ONE_ADDRESS]))
  .describe('Posts each event to an address.');

const commitStatus = z
  .object({
    secretRef: secretKeyRef('Secret with a token that may write commit statuses.', 'token'),
    api: httpUrlSchema
      .default('https://api.github.com')
      .describe(
        'Address of the REST API of the Git host, such as https://gitea.example.com/api/v1 or https://github.example.com/api/v3. Events about repositories of other hosts are skipped.',
      ),
    context: z
      .string()
      .min(1)
      .max(100)
      .default('sluice')
      .describe('First part of the context of each status; the kind and the name of the object follow.'),
  })
  .describe(
    'Sets the status of the commit that the event is about, on its Git host: events of DeliveryTargets and PackageRevisions.',
  );

export const notificationKind = defineKind({
  group: 'sluice.dev',
  version: 'v1alpha1',
  kind: 'Notification',
  plural: 'notifications',
  shortNames: ['ntf'],
  categories: ['sluice', 'all'],
  description: 'Sends events about the objects of its namespace to a receiver.',
  spec: z
    .object({
      events: z
        .array(rule)
        .min(1)
        .max(MAX_RULES)
        .describe('Events to send: those that match at least one entry. An empty entry matches every event.'),
      webhook: webhook.optional(),
      commitStatus: commitStatus.optional(),
      maxPerMinute: z
        .int()
        .min(1)
        .max(600)
        .default(30)
        .describe('Maximum number of messages per minute; others wait. Default 30.'),
      suspend: z
        .boolean()
        .optional()
        .describe('If true, sends nothing. Events that occur meanwhile are not sent later.'),
    })
    .refine((spec) => (spec.webhook === undefined) !== (spec.commitStatus === undefined), ONE_RECEIVER)
    .meta(clusterRules(['has(self.webhook) != has(self.commitStatus)', ONE_RECEIVER]))
    .describe('Events and their receiver.'),
  status: z
    .object({
      conditions: conditionsSchema.optional(),
      observedGeneration: observedGenerationSchema,
      sent: z.int().optional().describe('Number of messages that the receiver accepted.'),
      failed: z.int().optional().describe('Number of events that were given up.'),
      dropped: z.int().optional().describe('Number of events that were dropped since too many waited.'),
      waiting: z.int().optional().describe('Number of events that wait to be sent.'),
      lastSent: serverTimeSchema.describe('Time of the last message that the receiver accepted.'),
      lastError: z
        .object({
          time: serverTimeSchema.describe('Time of the attempt.'),
          event: z.string().describe('Reason and object of the event.'),
          message: z.string().describe('Cause, and the next step.'),
        })
        .nullish()
        .describe('Last failed attempt.'),
      handledUntil: serverTimeSchema.describe('Events before this time are done, even after a restart.'),
      recent: z
        .array(z.string())
        .max(MAX_RECENT)
        .optional()
        .describe('Identities of events at or after handledUntil that are done.'),
    })
    .describe('Observed state of the messages.'),
  printerColumns: [
    NAME_COLUMN,
    {
      name: 'Webhook',
      type: 'string',
      description: 'Format of the messages to a webhook; empty for commit statuses.',
      jsonPath: '.spec.webhook.format',
      value: ({ spec }) => spec.webhook?.format,
    },
    READY_COLUMN,
    { name: 'Sent', type: 'integer', jsonPath: '.status.sent', value: (object) => object.status?.sent },
    { name: 'Failed', type: 'integer', jsonPath: '.status.failed', value: (object) => object.status?.failed },
    { name: 'Waiting', type: 'integer', jsonPath: '.status.waiting', value: (object) => object.status?.waiting },
    {
      name: 'Last error',
      type: 'string',
      priority: 1,
      jsonPath: '.status.lastError.message',
      value: (object) => object.status?.lastError?.message,
    },
    AGE_COLUMN,
  ],
});

export type Notification = ObjectOf<typeof notificationKind>;
