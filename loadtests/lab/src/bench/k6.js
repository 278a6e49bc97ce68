// One GET after the other, as the load engine does it.

import http from 'k6/http';

export default function () {
  http.get(__ENV.URL);
}
