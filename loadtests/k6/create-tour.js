// The published test with its own tool: 10 virtual users who each fetch a token and create a tour, over and over.
//
//   cargo rowlock up                      prints the front's address and a client's credentials
//   FRONT=http://127.0.0.1:… CLIENT_ID=… CLIENT_SECRET=… target/k6-1.1.0/bin/k6 run --no-usage-report loadtests/k6/create-tour.js
//
// `cargo rowlock test` installs k6 there. DURATION (30s) and USERS (10) change the load.

import http from 'k6/http';
import { check, fail } from 'k6';

const payload = JSON.parse(open('../payloads/create-tour.json'));

export const options = {
  vus: Number(__ENV.USERS || 10),
  duration: __ENV.DURATION || '30s',
  thresholds: { checks: ['rate==1'] },
  summaryTrendStats: ['avg', 'min', 'med', 'p(90)', 'p(95)', 'p(99)', 'max', 'count'],
};

function needed(name) {
  return __ENV[name] || fail(`set ${name}; \`cargo rowlock up\` prints what to`);
}

export default function () {
  const front = needed('FRONT');
  const granted = http.post(
    `${front}/oauth2/token`,
    { grant_type: 'client_credentials', client_id: needed('CLIENT_ID'), client_secret: needed('CLIENT_SECRET') },
    { tags: { name: 'token' } },
  );
  if (!check(granted, { 'a token is granted': (answer) => answer.status === 200 })) {
    return;
  }

  const unique = `K6-${__VU}-${__ITER}-${Date.now()}`;
  const created = http.post(
    `${front}/api/v1/tours`,
    JSON.stringify({ ...payload, tourNumber: unique }),
    {
      headers: {
        Authorization: `Bearer ${granted.json('access_token')}`,
        'Content-Type': 'application/json',
        'Idempotency-Key': unique,
      },
      tags: { name: 'create-tour' },
    },
  );
  check(created, { 'a tour is created': (answer) => answer.status === 201 });
}
