//! The ledger's file as somebody with SQL sees and edits it, with the receipts unpacked.

use std::path::Path;
use std::time::Duration;

use receipt::packed::unpack;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, OpenFlags};

/// The longest wait for another connection's lock.
const BUSY: Duration = Duration::from_secs(10);

/// A view that can be edited. What is written is kept as it is, not packed.
const RECEIPTS: &str = "
CREATE TEMP VIEW receipts AS SELECT
  number AS receipt_number, id, chain_id, sequence, own,
  text ->> '$.credentialSubject.action.type' AS action_type,
  text ->> '$.credentialSubject.outcome.status' AS status,
  text ->> '$.credentialSubject.action.timestamp' AS timestamp,
  text ->> '$.issuanceDate' AS created_at,
  text ->> '$.credentialSubject.chain.previous_receipt_hash' AS previous_receipt_hash,
  'sha256:' || lower(hex(hash)) AS receipt_hash,
  receipt_json
FROM (SELECT *, receipt_text(packed) AS receipt_json,
  iif(json_valid(receipt_text(packed)), receipt_text(packed), '{}') AS text
  FROM main.signed_receipts);
CREATE TEMP TRIGGER receipts_deleted INSTEAD OF DELETE ON receipts BEGIN
  DELETE FROM signed_receipts WHERE number = OLD.receipt_number;
END;
CREATE TEMP TRIGGER receipts_changed INSTEAD OF UPDATE ON receipts BEGIN
  UPDATE signed_receipts SET id = NEW.id, chain_id = NEW.chain_id, sequence = NEW.sequence,
    own = NEW.own,
    hash = iif(NEW.receipt_hash IS OLD.receipt_hash, hash,
      COALESCE(unhex(substr(NEW.receipt_hash, 8)), NEW.receipt_hash)),
    packed = iif(NEW.receipt_json IS OLD.receipt_json, packed, NEW.receipt_json)
  WHERE number = OLD.receipt_number;
END;
CREATE TEMP TRIGGER receipts_added INSTEAD OF INSERT ON receipts BEGIN
  INSERT INTO signed_receipts (number, id, chain_id, sequence, own, hash, packed)
  VALUES (NEW.receipt_number, NEW.id, NEW.chain_id, NEW.sequence, NEW.own,
    COALESCE(unhex(substr(NEW.receipt_hash, 8)), x''), NEW.receipt_json);
END;
";

/// Opens the ledger of a home to edit it.
pub fn edit(home: impl AsRef<Path>) -> Connection {
    open(home.as_ref(), OpenFlags::SQLITE_OPEN_READ_WRITE)
}

/// Opens the ledger of a home to read it.
pub fn read(home: impl AsRef<Path>) -> Connection {
    open(home.as_ref(), OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn open(home: &Path, flags: OpenFlags) -> Connection {
    let db = Connection::open_with_flags(home.join("ledger.db"), flags).unwrap();
    db.busy_timeout(BUSY).unwrap();
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("receipt_text", 1, flags, |context| {
        Ok(match context.get_raw(0) {
            ValueRef::Blob(packed) => match unpack(packed).map(String::from_utf8) {
                Some(Ok(text)) => Value::Text(text),
                Some(Err(_)) | None => Value::Blob(packed.to_vec()),
            },
            ValueRef::Text(text) => match str::from_utf8(text) {
                Ok(text) => Value::Text(text.to_owned()),
                Err(_) => Value::Blob(text.to_vec()),
            },
            other => other.try_into()?,
        })
    })
    .unwrap();
    db.execute_batch(RECEIPTS).unwrap();
    db
}
